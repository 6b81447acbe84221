import { KIND } from '../../../../src/config/document.js';
import type { Document } from '../documents.js';
import type { Finding } from '../findings.js';
import { gatesIn } from '../tables/flags.js';
import { argumentOf, findingAt, printPlace, sectionsOf, type Place } from './place.js';

/** Feature gates are the same throughout a cluster, or components disagree on what there is. */

interface Gate extends Place {
  readonly name: string;
}

export function gateFindings(documents: readonly Document[]): readonly Finding[] {
  const first = new Map<string, Gate>();
  return documents.flatMap(gatesOf).flatMap((gate) => {
    const other = first.get(gate.name);
    if (other === undefined) first.set(gate.name, gate);
    return other === undefined || other.value === gate.value
      ? []
      : [findingAt('warning', 'feature-gate', gate, `does not agree with ${printPlace(other)}`)];
  });
}

const COMPONENTS = ['apiServer', 'controllerManager', 'scheduler'];

function gatesOf(document: Document): readonly Gate[] {
  const { proxy } = document;
  if (proxy !== null)
    return Object.entries(proxy.featureGates).map(([name, value]) =>
      gate(document, `${KIND}.featureGates`, name, value),
    );
  const ofNodes = sectionsOf([document], 'KubeletConfiguration').flatMap(({ section }) => {
    const gates = section.section('featureGates');
    return (gates?.names() ?? []).map((name) =>
      gate(document, section.pathOf('featureGates'), name, gates?.truth(name) === true),
    );
  });
  // kubeadm's own gates are others than those of the components.
  const ofArguments = sectionsOf([document], 'ClusterConfiguration').flatMap(({ section }) =>
    COMPONENTS.flatMap((component) => argumentOf(document, section.section(component), 'feature-gates')),
  );
  return [
    ...ofNodes,
    ...ofArguments.flatMap(({ path, value }) =>
      gatesIn(value).map(([name, truth]) => gate(document, path, name, truth)),
    ),
  ];
}

function gate(document: Document, path: string, name: string, value: boolean): Gate {
  return { document, path: `${path}.${name}`, name, value: String(value) };
}
