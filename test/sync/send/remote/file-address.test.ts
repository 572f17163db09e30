import { expect, it } from "vitest";
import { fileAddress } from "../../../../src/sync/send/remote/download.ts";

const HERE = "http://127.0.0.1:7411";

it.each<[string, string, string, string | undefined, string]>([
  [
    "of a service elsewhere is as given",
    "https://f.example/x/a",
    "https://f.example",
    undefined,
    "https://f.example/x/a",
  ],
  [
    "of this machine is at the port of now",
    "http://localhost:9/files/t/a",
    HERE,
    undefined,
    `${HERE}/files/t/a`,
  ],
  [
    "under a public address is fetched where we reach the service",
    "https://kb.example/files/t/a",
    "https://kb.example",
    HERE,
    `${HERE}/files/t/a`,
  ],
  [
    "below a public address is too",
    "https://kb.example/below/files/t/a?q",
    "https://kb.example/below",
    HERE,
    `${HERE}/files/t/a?q`,
  ],
  [
    "beside a public address is not",
    "https://kb.example/files/t/a",
    "https://kb.example/below",
    HERE,
    "https://kb.example/files/t/a",
  ],
  [
    "of the time before the public address is too",
    "http://127.0.0.1:9/files/t/a",
    "https://kb.example",
    HERE,
    `${HERE}/files/t/a`,
  ],
])("the address of a file %s", (_name, url, resourcesUrl, reachedAt, expected) => {
  expect(fileAddress(url, resourcesUrl, reachedAt).href).toBe(expected);
});
