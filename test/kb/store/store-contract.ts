import { describe } from "vitest";
import type { Store } from "../../../src/kb/store/store.ts";
import { chatContract } from "./contract-chat.ts";
import { documentsContract } from "./contract-documents.ts";
import { filterContract } from "./contract-filters.ts";
import { keysContract } from "./contract-keys.ts";
import { modelsContract } from "./contract-models.ts";
import { retentionContract } from "./contract-retention.ts";
import { resourceContract } from "./contract-resources.ts";
import { sentencesContract } from "./contract-sentences.ts";
import { vectorsContract } from "./contract-vectors.ts";
import { wordsContract } from "./contract-words.ts";
import { openFixture } from "./store-fixture.ts";

/** The contract suite of the Store port, for every implementation. `open` returns an empty store. */
export function storeContract(name: string, open: () => Promise<Store>): void {
  describe(`${name}: the store contract`, () => {
    const fixture = openFixture(open);
    resourceContract(fixture);
    wordsContract(fixture);
    vectorsContract(fixture);
    documentsContract(fixture);
    sentencesContract(fixture);
    modelsContract(fixture);
    filterContract(fixture);
    retentionContract(fixture);
    keysContract(fixture);
    chatContract(fixture);
  });
}
