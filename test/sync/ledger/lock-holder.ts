import { lockFolder } from "../../../src/lib/folder-lock.ts";

// Holds the lock of a state folder until it is killed.
lockFolder(process.argv[2] ?? "", "daemon");
setInterval(() => undefined, 1000);
process.send?.("locked");
