/** Tries to take the lock of a folder on request and reports the result. Releases it on request. */
import { lockFolder, type Lock } from "../../src/lib/folder-lock.ts";
import { codeOf, messageOf } from "../../src/lib/failure.ts";

let lock: Lock | undefined;
process.on("message", (order: { readonly folder: string; readonly atMs: number } | "release") => {
  if (order === "release") {
    lock?.release();
    lock = undefined;
    process.send?.("released");
    return;
  }
  // All contenders start at the same instant, within the precision of the clock.
  while (Date.now() < order.atMs);
  try {
    lock = lockFolder(order.folder, "daemon");
    process.send?.({ pid: process.pid, locked: true, message: "" });
  } catch (error) {
    process.send?.({ pid: process.pid, locked: codeOf(error) !== "state_locked", message: messageOf(error) });
  }
});
process.send?.("ready");
