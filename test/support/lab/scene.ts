import type { Test } from 'tap';
import { Lab } from './lab.js';
import type { Manifest } from './objects.js';
import { Proxy } from './proxy.js';

/** A laboratory with a proxy that serves these objects. */
export interface Scene {
  readonly lab: Lab;
  readonly proxy: Proxy;
}

/** With servers of TCP and UDP on port 8080 in two of the pods. */
export async function startScene(t: Test, objects: readonly Manifest[]): Promise<Scene> {
  const lab = await Lab.start(t);
  await lab.serveAll(
    ['pod-a', 'remote-a'],
    [
      [8080, 'TCP'],
      [8080, 'UDP'],
    ],
  );
  return { lab, proxy: await Proxy.start(t, lab, { objects }) };
}
