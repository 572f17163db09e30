import assert from "node:assert/strict";
import { FormData } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBody, fileForm, openRunning } from "../service/running.ts";
import type { Running, Sent } from "../service/running.ts";

let running: Running;
/** A content resource, a file resource, and the collection of both. */
let contentId: string;
let fileId: string;
let collectionId: string;

beforeAll(async () => {
  running = await openRunning({ limits: { contentBytes: 4000, uploadBytes: 5000 } });
  const content = await running.send("POST", "/api/rag/resource", { body: createBody() });
  const upload = await running.send("POST", "/image/processing/upload", { body: fileForm("some text") });
  const file = await running.send("POST", "/api/rag/resource", {
    body: createBody({ content: undefined, url: upload.json.file_url }),
  });
  assert.deepEqual([content.status, upload.status, file.status], [201, 200, 201]);
  contentId = content.json.data._id;
  fileId = file.json.data._id;
  collectionId = content.json.data.collectionId;
});

afterAll(() => running.close());

interface Case {
  readonly name: string;
  readonly method: string;
  /** `<content>`, `<file>`, `<collection>` and `<url>` are placeholders for what the fixture created. */
  readonly path: string;
  readonly sent?: Sent;
  readonly status: number;
  readonly code: string;
  readonly field?: string;
  /** Text that the message must contain. */
  readonly says?: string;
}

const UNKNOWN_ID = "0123456789abcdef01234567";
const post = (
  name: string,
  body: Sent["body"],
  status: number,
  code: string,
  field?: string,
  says?: string,
): Case => ({
  name,
  method: "POST",
  path: "/api/rag/resource",
  ...(body === undefined ? {} : { sent: { body } }),
  status,
  code,
  ...(field === undefined ? {} : { field }),
  ...(says === undefined ? {} : { says }),
});
const badField = (name: string, change: object, field: string, says?: string): Case =>
  post(name, createBody(change), 400, "invalid_field", field, says);
const put = (name: string, at: string, body: object, status: number, code: string, field?: string): Case => ({
  ...post(name, body, status, code, field),
  method: "PUT",
  path: `/api/rag/resource/${at}`,
});
const query = (
  name: string,
  body: object,
  status: number,
  code: string,
  field?: string,
  says?: string,
): Case => ({
  ...post(name, body, status, code, field, says),
  path: "/rag/query",
});
const list = (name: string, search: string, status: number, code: string, field?: string): Case => ({
  name,
  method: "GET",
  path: `/api/rag/resource/by-collection${search}`,
  status,
  code,
  ...(field === undefined ? {} : { field }),
});
const upload = (name: string, sent: Sent, status: number, code: string, field?: string): Case => ({
  name,
  method: "POST",
  path: "/image/processing/upload",
  sent,
  status,
  code,
  ...(field === undefined ? {} : { field }),
});

const CREATE: readonly Case[] = [
  post("no body", undefined, 400, "invalid_body"),
  post("an empty body", "", 400, "invalid_body"),
  post("malformed JSON", '{"title": ', 400, "invalid_body", undefined, "not valid JSON"),
  post("an array", [], 400, "invalid_body", undefined, "got an array"),
  post("null", "null", 400, "invalid_body", undefined, "got null"),
  post("a string", '"text"', 400, "invalid_body"),
  post(
    "bytes that are not UTF-8",
    Buffer.from('{"title":"\xff\xfe"}', "latin1"),
    400,
    "invalid_body",
    undefined,
    "UTF-8",
  ),
  post(
    "101 levels of nesting",
    `${"[".repeat(101)}${"]".repeat(101)}`,
    400,
    "invalid_body",
    undefined,
    "deeper",
  ),
  post("a body over the limit", createBody({ content: "x".repeat(6000) }), 413, "body_too_large"),
  post("a text over the limit", createBody({ content: "x".repeat(4001) }), 413, "text_too_large", "content"),
  badField("no title", { title: undefined }, "title", "title: expected a string, got nothing"),
  badField("an empty title", { title: "" }, "title", "not empty"),
  badField("a blank title", { title: "  \n " }, "title"),
  badField("a title that is a number", { title: 7 }, "title", "got 7"),
  badField("a title of 2001 characters", { title: "x".repeat(2001) }, "title", "at most 2000 characters"),
  badField("no description", { description: undefined }, "description"),
  badField("a description that is null", { description: null }, "description", "got null"),
  badField("no collection_details", { collection_details: undefined }, "collection_details"),
  badField(
    "an unknown tier",
    { collection_details: "slow" },
    "collection_details",
    'expected "fastest", "moderate" or "high_accuracy", got "slow"',
  ),
  badField("a tier in capitals", { collection_details: "Fastest" }, "collection_details"),
  badField("neither url nor content", { content: undefined }, "content", "neither"),
  badField("both url and content", { url: "https://example.com/" }, "url", "both"),
  badField("both, content empty", { url: "https://example.com/", content: "" }, "url", "both"),
  badField("content that is an object", { content: { text: "x" } }, "content", "got an object"),
  badField("an empty owner_id", { owner_id: "" }, "owner_id"),
  badField("an owner_id that is a number", { owner_id: 12 }, "owner_id"),
  badField("settings that are a string", { settings: "recursive" }, "settings"),
  badField(
    "an unknown strategy",
    { settings: { strategy: "Recursive" } },
    "settings.strategy",
    '"recursive", "semantic" or "agentic"',
  ),
  badField("chunkSize 0", { settings: { chunkSize: 0 } }, "settings.chunkSize", "at least 1"),
  badField("chunkSize 4001", { settings: { chunkSize: 4001 } }, "settings.chunkSize", "at most 4000"),
  badField("chunkSize 1.5", { settings: { chunkSize: 1.5 } }, "settings.chunkSize", "an integer, got 1.5"),
  badField(
    "chunkSize as words",
    { settings: { chunkSize: "big" } },
    "settings.chunkSize",
    'an integer, got "big"',
  ),
  badField("chunkSize 4001 as text", { settings: { chunkSize: "4001" } }, "settings.chunkSize"),
  badField("chunkSize empty", { settings: { chunkSize: "" } }, "settings.chunkSize"),
  badField("a negative overlap", { settings: { chunkOverlap: -1 } }, "settings.chunkOverlap"),
  badField(
    "overlap = size",
    { settings: { chunkSize: 50, chunkOverlap: 50 } },
    "settings.chunkOverlap",
    "below chunkSize",
  ),
  badField("overlap over the default size", { settings: { chunkOverlap: 1000 } }, "settings.chunkOverlap"),
  badField("a url that is none", { content: undefined, url: "not a url" }, "url", "http or https"),
  badField("an empty url", { content: undefined, url: "" }, "url"),
  badField("a file: url", { content: undefined, url: "file:///etc/passwd" }, "url"),
  badField(
    "a url under the service's address that was never issued",
    { content: undefined, url: `<url>/files/${"A".repeat(43)}/x.txt` },
    "url",
  ),
  badField("a url under ours that is no file", { content: undefined, url: "<url>/rag/query" }, "url"),
  badField("our bare address", { content: undefined, url: "<url>" }, "url"),
  post(
    "a link that leads nowhere",
    createBody({ content: undefined, url: "https://example.com/a" }),
    422,
    "link_failed",
    "url",
  ),
  post(
    "a link to this machine",
    createBody({ content: undefined, url: "http://0x7f.1:7411/" }),
    422,
    "link_refused",
    "url",
  ),
  {
    ...post("text/plain", "hello", 415, "unsupported_media_type"),
    sent: { body: "hello", headers: { "content-type": "text/plain" } },
  },
  {
    ...post("a content-type that is none", "hello", 415, "unsupported_media_type"),
    sent: { body: "hello", headers: { "content-type": "nonsense" } },
  },
  {
    ...post("a bad Idempotency-Key", createBody(), 400, "invalid_header"),
    sent: { body: createBody(), headers: { "idempotency-key": "a b" } },
  },
];

const UPDATE: readonly Case[] = [
  put("an unknown resource", UNKNOWN_ID, { title: "x" }, 404, "resource_not_found"),
  put("an id that is none", "nonsense", { title: "x" }, 404, "resource_not_found"),
  put("nothing to change", "<content>", {}, 400, "invalid_body"),
  put("only what cannot be changed", "<content>", { owner_id: "x" }, 400, "invalid_body"),
  put("url on a content resource", "<content>", { url: "https://example.com/" }, 400, "invalid_field", "url"),
  put("content on a file resource", "<file>", { content: "x" }, 400, "invalid_field", "content"),
  put(
    "a custom url on a file resource",
    "<file>",
    { url: "https://example.com/" },
    400,
    "invalid_field",
    "url",
  ),
  put(
    "a url of the service that was never issued",
    "<file>",
    { url: `<url>/files/${"A".repeat(43)}/x` },
    400,
    "invalid_field",
    "url",
  ),
  put("a url that is none", "<file>", { url: "::" }, 400, "invalid_field", "url"),
  put("an empty title", "<content>", { title: "" }, 400, "invalid_field", "title"),
  put(
    "bad settings",
    "<content>",
    { settings: { chunkSize: -1 } },
    400,
    "invalid_field",
    "settings.chunkSize",
  ),
  put(
    "a size below the stored overlap",
    "<content>",
    { settings: { chunkSize: 100 } },
    400,
    "invalid_field",
    "settings.chunkOverlap",
  ),
  put("a blank title", "<content>", { title: " " }, 400, "invalid_field", "title"),
  put("a text over the limit", "<content>", { content: "x".repeat(4001) }, 413, "text_too_large", "content"),
  {
    name: "PUT without an id",
    method: "PUT",
    path: "/api/rag/resource",
    status: 405,
    code: "method_not_allowed",
  },
  {
    name: "an empty body",
    method: "PUT",
    path: "/api/rag/resource/<content>",
    status: 400,
    code: "invalid_body",
  },
];

const READ_AND_DELETE: readonly Case[] = [
  {
    name: "a delete of an unknown resource",
    method: "DELETE",
    path: `/api/rag/resource/${UNKNOWN_ID}`,
    status: 404,
    code: "resource_not_found",
  },
  {
    name: "a read of an unknown resource",
    method: "GET",
    path: `/api/rag/resource/${UNKNOWN_ID}`,
    status: 404,
    code: "resource_not_found",
  },
  {
    name: "a read of an unknown resource's chunks",
    method: "GET",
    path: `/api/rag/resource/${UNKNOWN_ID}/chunks`,
    status: 404,
    code: "resource_not_found",
  },
  list("no parameters", "", 400, "invalid_field", "collectionId"),
  list("no ownerId", "?collectionId=<collection>", 400, "invalid_field", "ownerId"),
  list("an empty ownerId", "?collectionId=<collection>&ownerId=", 400, "invalid_field", "ownerId"),
  list(
    "collectionId twice",
    "?collectionId=<collection>&collectionId=b&ownerId=o",
    400,
    "invalid_field",
    "collectionId",
  ),
  list(
    "an unknown collection",
    `?collectionId=${UNKNOWN_ID}&ownerId=o`,
    404,
    "collection_not_found",
    "collectionId",
  ),
  list("a malformed collection id", "?collectionId=x&ownerId=o", 404, "collection_not_found", "collectionId"),
  list("limit 0", "?collectionId=<collection>&ownerId=o&limit=0", 400, "invalid_field", "limit"),
  list("limit 1001", "?collectionId=<collection>&ownerId=o&limit=1001", 400, "invalid_field", "limit"),
  list("limit in words", "?collectionId=<collection>&ownerId=o&limit=all", 400, "invalid_field", "limit"),
  list("a made-up cursor", "?collectionId=<collection>&ownerId=o&cursor=zzz", 400, "invalid_field", "cursor"),
];

const SEARCH: readonly Case[] = [
  query("no query", { doc_id: UNKNOWN_ID }, 400, "invalid_field", "query"),
  query("a blank query", { query: " ", doc_id: UNKNOWN_ID }, 400, "invalid_field", "query"),
  query(
    "a query of 8001 characters",
    { query: "x".repeat(8001), doc_id: "a" },
    400,
    "invalid_field",
    "query",
  ),
  query("neither document nor collection", { query: "sea" }, 422, "target_missing", "doc_id"),
  query("an owner alone", { query: "sea", owner_id: "o" }, 422, "target_missing", "doc_id"),
  query(
    "a collection without owner",
    { query: "sea", collection_id: "<collection>" },
    422,
    "owner_missing",
    "owner_id",
    "owner_id",
  ),
  query(
    "a collection with an empty owner",
    { query: "sea", collection_id: "<collection>", owner_id: "" },
    422,
    "owner_missing",
    "owner_id",
  ),
  query(
    "a collection with null as owner",
    { query: "sea", collection_id: "<collection>", owner_id: null },
    422,
    "owner_missing",
    "owner_id",
  ),
  query(
    "document and collection",
    { query: "sea", doc_id: "a", collection_id: "b", owner_id: "c" },
    400,
    "invalid_field",
    "collection_id",
    "both",
  ),
  query("an unknown document", { query: "sea", doc_id: UNKNOWN_ID }, 404, "resource_not_found"),
  query(
    "an unknown collection",
    { query: "sea", collection_id: UNKNOWN_ID, owner_id: "o" },
    404,
    "collection_not_found",
    "collection_id",
  ),
  query("top_k 0", { query: "sea", doc_id: "a", top_k: 0 }, 400, "invalid_field", "top_k"),
  query("top_k 101", { query: "sea", doc_id: "a", top_k: 101 }, 400, "invalid_field", "top_k"),
  query("score 1.1", { query: "sea", doc_id: "a", score: 1.1 }, 400, "invalid_field", "score"),
  query("score as text", { query: "sea", doc_id: "a", score: "0.5" }, 400, "invalid_field", "score"),
  query("a negative score", { query: "sea", doc_id: "a", score: -0.1 }, 400, "invalid_field", "score"),
];

const UPLOAD: readonly Case[] = [
  upload("JSON instead of a form", { body: { file: "x" } }, 415, "unsupported_media_type"),
  upload("no body", {}, 415, "unsupported_media_type"),
  upload("an empty file", { body: fileForm("") }, 400, "empty_file", "file"),
  upload(
    "the file in another part",
    { body: fileForm("x", "x.txt", "document") },
    400,
    "invalid_field",
    "file",
  ),
  upload(
    "an ELF program",
    { body: fileForm(Buffer.from("\x7fELF\x02\x01\x01\0\0\0", "latin1"), "a.txt") },
    415,
    "unsupported_media_type",
  ),
  upload("a file over the limit", { body: fileForm("x".repeat(5001)) }, 413, "file_too_large", "file"),
  upload("a file far over the limit", { body: fileForm("x".repeat(500_000)) }, 413, "file_too_large", "file"),
  upload("a form of many fields", { body: formOf(25, "x") }, 413, "body_too_large"),
  upload("a form of many files", { body: formOf(2, new Blob(["x"])) }, 413, "body_too_large"),
  upload(
    "an incomplete form",
    {
      body: "--b\r\ncontent-disposition: form-data; name=file; filename=a\r\n\r\nabc",
      headers: { "content-type": "multipart/form-data; boundary=b" },
    },
    400,
    "invalid_body",
  ),
  upload(
    "a form without boundary",
    { body: "abc", headers: { "content-type": "multipart/form-data" } },
    400,
    "invalid_body",
  ),
  upload(
    "a form without a file",
    {
      body: '--b\r\ncontent-disposition: form-data; name="file"\r\n\r\nabc\r\n--b--\r\n',
      headers: { "content-type": "multipart/form-data; boundary=b" },
    },
    400,
    "invalid_field",
    "file",
  ),
];

const ROUTES_AND_KEYS: readonly Case[] = [
  { name: "an unknown route", method: "GET", path: "/nope", status: 404, code: "route_not_found" },
  { name: "the root", method: "GET", path: "/", status: 404, code: "route_not_found" },
  {
    name: "an unknown route with a body",
    method: "POST",
    path: "/nope",
    sent: { body: "{" },
    status: 404,
    code: "route_not_found",
  },
  { name: "a wrong method", method: "GET", path: "/rag/query", status: 405, code: "method_not_allowed" },
  {
    name: "PATCH",
    method: "PATCH",
    path: "/api/rag/resource/<content>",
    status: 405,
    code: "method_not_allowed",
    says: "This address does not support PATCH, expected DELETE, GET, HEAD or PUT.",
  },
  {
    name: "POST on the list",
    method: "POST",
    path: "/api/rag/resource/by-collection",
    status: 405,
    code: "method_not_allowed",
  },
  {
    name: "a broken escape in the path",
    method: "GET",
    path: "/api/rag/resource/%zz",
    status: 400,
    code: "invalid_request",
  },
  {
    name: "a path of 4000 characters",
    method: "GET",
    path: `/api/rag/resource/${"a".repeat(4000)}`,
    status: 400,
    code: "invalid_request",
  },
  {
    name: "no key",
    method: "GET",
    path: "/api/rag/collections",
    sent: { key: null },
    status: 401,
    code: "key_missing",
  },
  {
    name: "an unknown key",
    method: "GET",
    path: "/api/rag/collections",
    sent: { key: "kb_nope" },
    status: 401,
    code: "key_unknown",
  },
  {
    name: "an endless key",
    method: "GET",
    path: "/api/rag/collections",
    sent: { key: "k".repeat(5000) },
    status: 401,
    code: "key_unknown",
  },
  {
    name: "no key, before the body is read",
    method: "POST",
    path: "/api/rag/resource",
    sent: { key: null, body: "{" },
    status: 401,
    code: "key_missing",
  },
  {
    name: "an unknown file",
    method: "GET",
    path: `/files/${"A".repeat(43)}/x.txt`,
    status: 404,
    code: "file_not_found",
  },
  {
    name: "a path outside the uploads",
    method: "GET",
    path: "/files/..%2f..%2fkb.sqlite/x",
    status: 404,
    code: "file_not_found",
  },
  {
    name: "a chat completion without an agent",
    method: "POST",
    path: "/api/v2/model/chat/completion",
    sent: { body: {} },
    status: 400,
    code: "invalid_field",
    field: "agent_id",
  },
  {
    name: "a chat upload that is no image",
    method: "POST",
    path: "/files/upload",
    sent: { body: fileForm("x") },
    status: 415,
    code: "unsupported_media_type",
    field: "file",
  },
];

function formOf(parts: number, value: string | Blob): FormData {
  const form = new FormData();
  for (let part = 0; part < parts; part += 1) {
    if (typeof value === "string") form.append(`field${part}`, value);
    else form.append("file", value, `${part}.txt`);
  }
  return form;
}

describe.each([
  { of: "create", cases: CREATE },
  { of: "update", cases: UPDATE },
  { of: "read and delete", cases: READ_AND_DELETE },
  { of: "search", cases: SEARCH },
  { of: "upload", cases: UPLOAD },
  { of: "routes and keys", cases: ROUTES_AND_KEYS },
])("refusals of $of", ({ cases }) => {
  it.each(cases)(
    "refuses $name with $status $code",
    async ({ method, path, sent, status, code, field, says }) => {
      const answer = await running.send(method, filled(path), filledSent(sent));
      const { hint = "", ...error } = answer.json?.error ?? {};
      expect({ ...answer.json, error }).toEqual({
        success: false,
        message: expect.any(String),
        error: field === undefined ? { code } : { code, field },
      });
      expect(hint).toBeTypeOf("string");
      expect(answer.status).toBe(status);
      expect(answer.headers["content-type"]).toMatch(/^application\/json/);
      expect(answer.json.message).toContain(says ?? "");
      expect(answer.json.message.length).toBeLessThan(300);
      expect(answer.headers["allow"] === undefined).toBe(status !== 405);
    },
  );
});

function filled(text: string): string {
  return text
    .replaceAll("<content>", contentId)
    .replaceAll("<file>", fileId)
    .replaceAll("<collection>", collectionId)
    .replaceAll("<url>", running.url);
}

function filledSent(sent: Sent | undefined): Sent | undefined {
  const body = sent?.body;
  if (sent === undefined || body?.constructor !== Object) return sent;
  return { ...sent, body: filled(JSON.stringify(body)) };
}
