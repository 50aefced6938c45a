// @ts-check
/** Read numbers as JSON from stdin and write each as `shortNumber` does. */

import { shortNumber } from "../../gradlab/front/numbers.js";

const numbers = JSON.parse(await new Response(Deno.stdin.readable).text());
console.log(JSON.stringify(numbers.map(shortNumber)));
