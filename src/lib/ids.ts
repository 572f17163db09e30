import { randomBytes } from "node:crypto";

let counter = randomBytes(3).readUIntBE(0, 3);
const processPart = randomBytes(5).toString("hex");

/**
 * Creates an id of 24 lower-case hex digits in the layout of a MongoDB ObjectId: seconds, process, counter. Existing
 * clients validate that form. Unique within a process up to 2^24 ids a second.
 */
export function newHexId(nowMs: number): string {
  counter = (counter + 1) & 0xffffff;
  const seconds = Math.floor(nowMs / 1000) & 0xffffffff;
  return (seconds >>> 0).toString(16).padStart(8, "0") + processPart + counter.toString(16).padStart(6, "0");
}
