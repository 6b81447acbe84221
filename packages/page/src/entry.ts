import { fileURLToPath } from 'node:url';
import type { OpenPageParts } from '../../../src/serve/page.js';
import { PageServer } from './server.js';

export { forwardPage } from './forward.js';

/** The page with the files that are shipped beside the program. */
export function openPage(parts: OpenPageParts): PageServer {
  return new PageServer({ ...parts, folder: fileURLToPath(new URL('./ui/', import.meta.url)) });
}
