import { z } from "zod";
import { ConfigFile } from "./schema.ts";

/** A JSON Schema, or a part of one. */
export type JsonSchema = z.core.JSONSchema.JSONSchema;

/** Generates the JSON Schema (2020-12) of the configuration file, for editors. */
export function configJsonSchema(): JsonSchema {
  return {
    title: "kbsync configuration",
    ...z.toJSONSchema(ConfigFile, { io: "input", unrepresentable: "any" }),
  };
}

/** Returns the known keys at a JSON path such as `sources[0].settings`; empty if there are none. */
export function knownKeys(path: string): string[] {
  const parts = path.split(/[.[\]]+/).filter((part) => part !== "");
  const nodes = parts.reduce(
    (found, part) => found.flatMap((node) => alternatives(schemaAt(node, part))),
    alternatives(configJsonSchema()),
  );
  return [...new Set(nodes.flatMap(({ properties = {} }) => Object.keys(properties)))];
}

function alternatives(node: JsonSchema): readonly JsonSchema[] {
  return node.anyOf ?? [node];
}

/** Returns the part for a key, or for an item if `part` is a number; an empty one if there is none. */
export function schemaAt({ items, properties }: JsonSchema, part: string): JsonSchema {
  const found = /^\d+$/.test(part) ? items : properties?.[part];
  return typeof found === "object" && !Array.isArray(found) ? found : {};
}
