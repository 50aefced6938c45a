// @ts-check
/** What a page without a kernel holds of a recording, unpacked. */

/** Return a recording. @param {string} packed gzip, as base64 */
export async function unpacked(packed) {
  const letters = atob(packed.trim());
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at); // a call a letter takes a phone long
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).json();
}
