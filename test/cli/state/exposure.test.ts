import { expect, it } from "vitest";
import { filesOfOneProcess, openWithoutTls } from "../../../src/cli/state/exposure.ts";
import { parseConfig } from "../../../src/config/config-file.ts";

const service = (more: object) =>
  parseConfig(JSON.stringify({ service: { requireKey: true, ...more } }), "c.json").service;
const HOSTED = { apiUrl: "http://a.example", dbUrl: "http://b.example", resourcesUrl: "http://c.example" };

it.each([
  ["of this machine alone", service({}), false],
  ["of this machine alone, by an address of its own", service({ publicUrl: "http://localhost:80" }), false],
  ["on loopback behind a proxy without TLS", service({ publicUrl: "http://kb.example" }), true],
  ["on loopback behind a proxy with TLS", service({ publicUrl: "https://kb.example" }), false],
  ["behind a proxy with TLS", service({ host: "10.0.0.1", publicUrl: "https://kb.example" }), false],
  ["that others reach by http", service({ host: "0.0.0.0", publicUrl: "http://kb.example" }), true],
  ["elsewhere", parseConfig(JSON.stringify({ service: HOSTED }), "c.json").service, false],
])("a service %s", (_name, given, expected) => {
  expect(openWithoutTls(given) !== undefined).toBe(expected);
});

it.each([
  ["with its own store", service({}), false],
  ["on a database, with files in its state folder", service({ database: "postgres://a@b/c" }), true],
  ["on a database, with files for all", service({ database: "postgres://a@b/c", files: "s3://abc" }), false],
  ["elsewhere", parseConfig(JSON.stringify({ service: HOSTED }), "c.json").service, false],
])("a service %s says whether others cannot read its files", (_name, given, expected) => {
  expect(filesOfOneProcess(given) !== undefined).toBe(expected);
});
