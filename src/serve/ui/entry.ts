import { fileURLToPath } from 'node:url';
import { PageServer, type PageServerParts } from './server.js';

export { forwardPage } from './forward.js';

/** The page with the files that are shipped beside the program. */
export function openPage(parts: Omit<PageServerParts, 'folder'>): PageServer {
  return new PageServer({ ...parts, folder: fileURLToPath(new URL('./ui/', import.meta.url)) });
}
