import { existsSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname, join } from "node:path";
import { packagePath } from "../../../lib/package.ts";

/** Data that documents are read with, and the development dependency that has each in a clone. */
export const DATA = {
  /** Tables that fonts of Chinese, Japanese and Korean texts refer to without including them. */
  cmaps: { package: "pdfjs-dist", folder: "cmaps" },
  /** The English data of text recognition. */
  ocr: { package: "@tesseract.js-data/eng", folder: "4.0.0_best_int" },
} as const;

/** Returns the folder of some data: that in our package, or in a clone that of the npm package it comes from. */
export function dataFolder(name: keyof typeof DATA): string {
  const shipped = packagePath("data", name);
  return existsSync(shipped) ? shipped : dataInClone(name);
}

/** Returns where the data is in a clone. Throws if the package is not installed. */
export function dataInClone(name: keyof typeof DATA): string {
  const { package: packageName, folder } = DATA[name];
  const packageJson = findPackageJSON(packageName, import.meta.url);
  if (packageJson === undefined) throw new Error(`${packageName} is not installed`);
  return join(dirname(packageJson), folder);
}
