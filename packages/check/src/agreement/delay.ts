import { activeSection } from '../../../../src/config/effective.js';
import { KIND } from '../../../../src/config/document.js';
import type { Document } from '../documents.js';
import type { Finding } from '../findings.js';
import { argumentOf, findingAt, millisecondsOf, placeOf, printPlace, sectionsOf, type Place } from './place.js';

/** How long a change of endpoints is held back on purpose: by the controller that writes EndpointSlices, and then by the node proxy. */

/**
 * Periods that add up to more than a cluster promises.
 *
 * @param objective milliseconds from a pod's change to rules on every node.
 */
export function delayFindings(documents: readonly Document[], objective: number): readonly Finding[] {
  const written = longest(batchPeriods(documents));
  const synced = longest(syncPeriods(documents));
  const total = milliseconds(written) + milliseconds(synced);
  const place = synced ?? written;
  if (place === null || total <= objective) return [];
  const problem = `more than the ${objective / 1000}s of --slo`;
  return [
    synced === null || written === null
      ? findingAt('error', 'slo', place, `is ${problem}`)
      : findingAt('error', 'slo', place, `adds up with ${printPlace(written)} to ${total / 1000}s, ${problem}`),
  ];
}

function milliseconds(place: Place | null): number {
  return place === null ? 0 : millisecondsOf(place.value);
}

function longest(places: readonly Place[]): Place | null {
  return places.reduce<Place | null>(
    (found, place) => (milliseconds(place) > milliseconds(found) ? place : found),
    null,
  );
}

/** The controllers whose slices node proxies read. */
const CONTROLLERS = [
  ['EndpointSliceController', 'EndpointUpdatesBatchPeriod'],
  ['EndpointSliceMirroringController', 'MirroringEndpointUpdatesBatchPeriod'],
] as const;
const ARGUMENTS = ['endpointslice-updates-batch-period', 'mirroring-endpointslice-updates-batch-period'];

function batchPeriods(documents: readonly Document[]): readonly Place[] {
  return [
    ...sectionsOf(documents, 'KubeControllerManagerConfiguration').flatMap(({ document, section }) =>
      CONTROLLERS.flatMap(([controller, field]) => placeOf(document, section.section(controller), field)),
    ),
    ...sectionsOf(documents, 'ClusterConfiguration').flatMap(({ document, section }) =>
      ARGUMENTS.flatMap((name) => argumentOf(document, section.section('controllerManager'), name)),
    ),
  ];
}

function syncPeriods(documents: readonly Document[]): readonly Place[] {
  return documents.flatMap((document) => {
    const { proxy } = document;
    if (proxy === null) return [];
    const section = activeSection(proxy);
    return [{ document, path: `${KIND}.${section}.minSyncPeriod`, value: proxy[section].minSyncPeriod }];
  });
}
