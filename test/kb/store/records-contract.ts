import { describe } from "vitest";
import type { Store } from "../../../src/kb/store/store.ts";
import { chatContract } from "./contract-chat.ts";
import { keysContract } from "./contract-keys.ts";
import { resourceContract } from "./contract-resources.ts";
import { retentionContract } from "./contract-retention.ts";
import { webhookEventsContract } from "./contract-webhook-events.ts";
import { openFixture } from "./store-fixture.ts";

/** The contract suite of the port `Records`, for every implementation. `open` returns an empty store. */
export function recordsContract(name: string, open: () => Promise<Store>): void {
  describe(`${name}: the records contract`, () => {
    const fixture = openFixture(open);
    resourceContract(fixture);
    retentionContract(fixture);
    keysContract(fixture);
    chatContract(fixture);
    webhookEventsContract(fixture);
  });
}
