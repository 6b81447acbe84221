import type { Document } from '../documents.js';
import type { Finding } from '../findings.js';
import { truthOf } from '../tables/flags.js';
import { argumentOf, findingAt, millisecondsOf, placeOf, printPlace, sectionsOf, type Place } from './place.js';

/** Settings of one component of the control plane that only make sense with those of another. */

export function controlPlaneFindings(documents: readonly Document[]): readonly Finding[] {
  return [...heartbeats(documents), ...anonymous(documents), ...garbage(documents)];
}

function argumentsOf(documents: readonly Document[], component: string, name: string): readonly Place[] {
  return sectionsOf(documents, 'ClusterConfiguration').flatMap(({ document, section }) =>
    argumentOf(document, section.section(component), name),
  );
}

const MANAGER = 'KubeControllerManagerConfiguration';
/** The node agent's default. */
const POSTED_EACH = '10s';

/** A node is given up when it has not reported for a while, so it has to report more often than that. */
function heartbeats(documents: readonly Document[]): readonly Finding[] {
  const graces = [
    ...argumentsOf(documents, 'controllerManager', 'node-monitor-grace-period'),
    ...sectionsOf(documents, MANAGER).flatMap(({ document, section }) =>
      placeOf(document, section.section('NodeLifecycleController'), 'NodeMonitorGracePeriod'),
    ),
  ].filter(({ value }) => millisecondsOf(value) > 0);
  return sectionsOf(documents, 'KubeletConfiguration').flatMap(({ document, section }) => {
    const value = section.text('nodeStatusUpdateFrequency');
    const posted = millisecondsOf(value) > 0 ? value : POSTED_EACH;
    const place = { document, path: section.pathOf('nodeStatusUpdateFrequency'), value: posted };
    const grace = graces.find((each) => millisecondsOf(each.value) <= millisecondsOf(posted));
    if (grace === undefined) return [];
    return [findingAt('error', 'heartbeat', place, `is not more often than ${printPlace(grace)}`)];
  });
}

/** Anonymous requests are set in a file or by a flag. */
function anonymous(documents: readonly Document[]): readonly Finding[] {
  const given = sectionsOf(documents, 'AuthenticationConfiguration').filter(({ section }) => section.has('anonymous'));
  return argumentsOf(documents, 'apiServer', 'anonymous-auth').flatMap((place) =>
    given.map(({ document: { file }, section }) =>
      findingAt('error', 'anonymous', place, `must not be given beside ${section.pathOf('anonymous')} (${file})`),
    ),
  );
}

/** Who deletes and who lets things be deleted. */
function garbage(documents: readonly Document[]): readonly Finding[] {
  const name = 'EnableGarbageCollector';
  const managers = sectionsOf(documents, MANAGER).flatMap(({ document, section }): readonly Place[] => {
    const collector = section.section('GarbageCollectorController');
    if (collector?.isGiven(name) !== true) return [];
    return [{ document, path: collector.pathOf(name), value: String(collector.truth(name)) }];
  });
  const [server] = argumentsOf(documents, 'apiServer', 'enable-garbage-collector');
  if (server === undefined || truthOf(server.value) === null) return [];
  return managers
    .filter(({ value }) => value !== String(truthOf(server.value)))
    .map((place) => findingAt('error', 'garbage-collector', place, `does not agree with ${printPlace(server)}`));
}
