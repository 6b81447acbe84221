import type { HostPort } from '../config/host-port.js';
import type { AccessControl, AccessControlParts } from '../serve/access-control.js';
import type { OpenPage, OpenPageParts } from '../serve/page.js';

/** Packages that the process asks, each a bundle of its own that is read when it is first asked for. Commands load theirs in `commands`. */

export async function openAccessControl(
  parts: AccessControlParts,
): Promise<AccessControl | { readonly problem: string }> {
  const secured = await import('../../packages/secured/src/access-control.js');
  return await secured.openAccessControl(parts);
}

export async function openPage(parts: OpenPageParts): Promise<OpenPage> {
  return (await page()).openPage(parts);
}

/** Where the page is, served until this process ends. */
export async function forwardPage(socket: string, place: HostPort): Promise<string> {
  return await (await page()).forwardPage(socket, place);
}

const page = async () => await import('../../packages/page/src/entry.js');
