import type { HostPort } from '../config/host-port.js';
import { STATUS_PAGE } from '../serve/status-pages.js';
import { messageOf } from '../base/error-message.js';
import { ask } from './ask.js';
import { AskError } from './ask-error.js';
import { forwardPage } from './packages.js';

/**
 * Serves the page of the running process to this machine, until this process ends. Resolves to what there is to print.
 *
 * @throws AskError when there is no process, or the address cannot be had.
 */
export async function servePage(socket: string | null, place: HostPort): Promise<string> {
  await ask(socket, STATUS_PAGE);
  try {
    return `${await forwardPage(socket ?? '', place)}\n`;
  } catch (error) {
    throw new AskError(`--listen: ${messageOf(error)}`, { cause: error });
  }
}
