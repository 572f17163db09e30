import { lockFolder } from "../../../src/lib/folder-lock.ts";

// Holds the lock of a state folder until it is killed, or the test that started it is gone.
lockFolder(process.argv[2] ?? "", "daemon");
process.channel?.ref();
process.on("disconnect", () => process.exit());
process.send?.("locked");
