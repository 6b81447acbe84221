import { HERE_VARIABLE } from './lab.js';
import { MODE_VARIABLE, type LabMode } from './mode.js';

/** Runs packet files in a mode, one after the other, with the node's namespace and the program in this process. */
export async function repeatHere(mode: LabMode, ...files: readonly (() => Promise<unknown>)[]): Promise<void> {
  process.env[HERE_VARIABLE] = 'yes';
  process.env[MODE_VARIABLE] = mode;
  for (const file of files) await file();
}
