// @ts-check
/** What a page without a kernel holds of a recording, unpacked. */

/** Return a recording. @param {string} packed gzip, as base64 */
export async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).json();
}
