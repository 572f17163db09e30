import { z } from "zod";
import { ConfigFile } from "./schema.ts";

/** Generates the JSON Schema (2020-12) of the configuration file, for editors. */
export function configJsonSchema(): object {
  return {
    title: "kbsync configuration",
    ...z.toJSONSchema(ConfigFile, { io: "input", unrepresentable: "any" }),
  };
}

/** Returns the known keys at a JSON path such as `sources[0].settings`; empty if there are none. */
export function knownKeys(path: string): string[] {
  const parts = path.split(/[.[\]]+/).filter((part) => part !== "");
  let nodes: unknown[] = [configJsonSchema()];
  for (const part of parts) {
    nodes = nodes.flatMap(alternatives).map((node) => child(node, part));
  }
  const keys = nodes.flatMap(alternatives).flatMap((node) => Object.keys(objectAt(node, "properties")));
  return [...new Set(keys)];
}

function alternatives(node: unknown): unknown[] {
  const anyOf = objectAt(node, "anyOf");
  return Array.isArray(anyOf) ? anyOf : [node];
}

function child(node: unknown, part: string): unknown {
  return /^\d+$/.test(part) ? objectAt(node, "items") : Reflect.get(objectAt(node, "properties"), part);
}

function objectAt(node: unknown, key: string): object {
  if (typeof node !== "object" || node === null) return {};
  const value: unknown = Reflect.get(node, key);
  return typeof value === "object" && value !== null ? value : {};
}
