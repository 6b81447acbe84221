import type { Socket } from 'node:net';

/** The file descriptor of an open socket, which Node has no public name for; null where there is none. */
export function descriptorOf(socket: Socket): number | null {
  const handle: unknown = Reflect.get(socket, '_handle');
  const fd: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'fd') : null;
  return typeof fd === 'number' && fd >= 0 ? fd : null;
}
