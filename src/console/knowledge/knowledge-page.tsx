import type { JSX } from "preact";
import type { OwnerEntry } from "../../wire/owners.ts";
import { count } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { Empty, Show } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { addressOf } from "../view/address.ts";
import { route } from "../view/router.ts";
import { liveTurn } from "../client/live.ts";
import { may } from "../client/session.ts";
import { DocumentsPage } from "./documents-page.tsx";
import { loadOwners } from "./documents.ts";
import { ownerWords } from "./owner-words.ts";
import { TIER_WORDS } from "./tiers.ts";

/** How often the page asks in case that the live link is lost. */
const EVERY_MS = 30_000;

/** Collections and owners, or the documents of one. */
export function KnowledgePage(): JSX.Element {
  const { query } = route.value;
  const [collectionId, ownerId] = [query.get("collection"), query.get("owner")];
  if (collectionId !== null && ownerId !== null)
    return <DocumentsPage key={`${collectionId} ${ownerId}`} collectionId={collectionId} ownerId={ownerId} />;
  return <OwnersPage />;
}

function OwnersPage(): JSX.Element {
  const owners = useLoad("owners", loadOwners, EVERY_MS, liveTurn);
  return (
    <Page
      title="Knowledge"
      intro="Each owner has its own documents in a collection. A search covers one owner."
      actions={
        may("write") ? (
          <a class="button primary" href={addressOf(["add"])}>
            Add documents
          </a>
        ) : undefined
      }
    >
      <Show loaded={owners}>
        {(found) =>
          found.length === 0 ? (
            <Empty
              title="No documents yet"
              action={
                <a class="button primary" href={addressOf(["add"])}>
                  Add documents
                </a>
              }
            >
              Add an address, files or a text, or watch a folder with <code>kbsync up FOLDER</code>.
            </Empty>
          ) : (
            <OwnersTable owners={found} />
          )
        }
      </Show>
    </Page>
  );
}

function OwnersTable({ owners }: { readonly owners: readonly OwnerEntry[] }): JSX.Element {
  return (
    <div class="card flush scroll">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Owner</th>
            <th scope="col">Collection</th>
            <th scope="col" class="number">
              Documents
            </th>
            <th scope="col" class="number">
              Chunks
            </th>
          </tr>
        </thead>
        <tbody>
          {owners.map(({ collectionId, ownerId, details, resources, chunks }) => (
            <tr key={`${collectionId} ${ownerId}`}>
              <td>
                <a href={addressOf(["knowledge"], { collection: collectionId, owner: ownerId })}>
                  {ownerWords(ownerId)}
                </a>
              </td>
              <td>{TIER_WORDS[details].label}</td>
              <td class="number">{count(resources)}</td>
              <td class="number">{count(chunks)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
