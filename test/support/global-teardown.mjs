import { removeRunFolder } from "./run-folder.mjs";

export default async function globalTeardown() {
  removeRunFolder();
  await globalThis.stopEngines();
}
