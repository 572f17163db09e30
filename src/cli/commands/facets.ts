import type { Command } from "commander";
import { loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { pagesOf } from "../../lib/pages.ts";
import { type KnowledgeService, openServiceConnections } from "../../mcp/service.ts";
import { searchScopes } from "../../sync/operator/search.ts";
import type { Facet } from "../../wire/facets.ts";
import { reachService } from "../compose/reached-service.ts";
import type { Context } from "../output/context.ts";
import { openLog } from "../terminal/log.ts";
import { documentProse } from "../terminal/prose.ts";
import { type CommonOptions, configRequest, filterOption } from "../output/options.ts";
import { visibleLine } from "../output/visible.ts";
import { openSynced } from "../state/ask.ts";
import { makeStateFolder } from "../state/state-folder.ts";

interface FacetsOptions extends CommonOptions {
  readonly filter?: object;
  readonly json?: boolean;
}

/** The facets of the sources that share owner and collection. */
interface ScopeFacets {
  readonly sources: readonly string[];
  readonly facets: readonly Facet[];
}

/** Values per field if no field is named: enough to see what a field is for. */
const VALUES_FEW = 10;

/** `kbsync facets [FIELD…]`: lists the metadata that `kbsync search --filter` can name. */
export function addFacets(program: Command, context: Context): void {
  program
    .command("facets")
    .description("list the metadata fields of documents and their values, for search --filter")
    .argument("[fields...]", "list only these fields, with all their values")
    .option("--filter <json>", "count only documents with this metadata", filterOption)
    .option("--json", "print the fields as JSON")
    .action(async (fields: string[], options: FacetsOptions) => listFacets(context, fields, options));
}

async function listFacets(
  context: Context,
  fields: readonly string[],
  options: FacetsOptions,
): Promise<void> {
  const config = loadConfig(configRequest(context, options));
  const state = makeStateFolder(config.stateDir);
  const lookup = openSynced(state.path);
  const connections = openServiceConnections();
  try {
    const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY, context.invocation);
    const service = await reachService(config, state, context.env, log);
    try {
      const found: ScopeFacets[] = [];
      for (const scope of searchScopes(lookup.sources)) {
        const sources = lookup.sources
          .filter((one) => one.collectionId === scope.collectionId && one.ownerId === scope.ownerId)
          .map(({ path }) => path);
        const query = { ...scope, filter: options.filter, ...(fields.length > 0 && { fields }) };
        found.push({ sources, facets: await allFacets(connections.as(service), query, context.signal) });
      }
      const valuesMax = fields.length > 0 ? Infinity : VALUES_FEW;
      context.stdout.write(
        options.json === true
          ? `${JSON.stringify({ scopes: found }, undefined, 2)}\n`
          : documentProse(context.stdout, facetsText(found, valuesMax)),
      );
    } finally {
      await service.close();
    }
  } finally {
    await connections.close();
    lookup.close();
  }
}

/** Reads all pages. */
async function allFacets(
  service: KnowledgeService,
  query: Parameters<KnowledgeService["facets"]>[0],
  signal: AbortSignal,
): Promise<readonly Facet[]> {
  const facets: Facet[] = [];
  const pages = pagesOf({
    what: "list of metadata",
    read: async (cursor) => {
      const page = await service.facets({ ...query, cursor }, signal);
      if (page !== undefined) return page;
      throw new KbsyncError("the service does not list metadata", { code: "service_refused" });
    },
    next: ({ nextCursor }) => nextCursor,
  });
  for await (const page of pages) facets.push(...page.facets);
  return facets;
}

/** The fields of each scope; the folders are named if there are several scopes. */
function facetsText(scopes: readonly ScopeFacets[], valuesMax: number): string {
  const parts = scopes.map(({ sources, facets }) => {
    const head = scopes.length > 1 ? sources.map((path) => `${visibleLine(path)}\n`).join("") : "";
    if (facets.length === 0) return `${head}no metadata\n`;
    return head + facets.map((facet) => facetText(facet, valuesMax)).join("");
  });
  return parts.length === 0 ? "no metadata\n" : parts.join("\n");
}

function facetText({ field, distinct, values }: Facet, valuesMax: number): string {
  const shown = values.slice(0, valuesMax);
  const lines = shown.map(
    ({ value, count }) => `${String(count).padStart(8)}  ${visibleLine(String(value))}\n`,
  );
  if (distinct > shown.length) lines.push(`          ${distinct - shown.length} more\n`);
  return `${visibleLine(field)}\n${lines.join("")}`;
}
