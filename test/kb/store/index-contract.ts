import { describe } from "vitest";
import type { Store } from "../../../src/kb/store/store.ts";
import { documentListContract } from "./contract-document-list.ts";
import { documentsContract } from "./contract-documents.ts";
import { filterContract } from "./contract-filters.ts";
import { modelsContract } from "./contract-models.ts";
import { sentencesContract } from "./contract-sentences.ts";
import { pendingContract } from "./contract-pending.ts";
import { surroundingsContract } from "./contract-surroundings.ts";
import { vectorsContract } from "./contract-vectors.ts";
import { wordsContract } from "./contract-words.ts";
import { openFixture } from "./store-fixture.ts";

/**
 * The contract suite of the port `Index`, for every implementation. `open` returns an empty store, whose records are
 * written through the port `Records`.
 */
export function indexContract(name: string, open: () => Promise<Store>): void {
  describe(`${name}: the index contract`, () => {
    const fixture = openFixture(open);
    wordsContract(fixture);
    vectorsContract(fixture);
    documentsContract(fixture);
    documentListContract(fixture);
    sentencesContract(fixture);
    surroundingsContract(fixture);
    modelsContract(fixture);
    filterContract(fixture);
    pendingContract(fixture);
  });
}
