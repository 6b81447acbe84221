/** This program's own release, as package.json has it. */
export const OWN_VERSION = '0.1.0';

/** Defined by bundle/bundle.mjs, and only in the bundle. */
declare const POINTSMAN_COMMIT: string | undefined;
declare const POINTSMAN_DATE: string | undefined;

/** The commit that the program was built from and its date; each is empty where unknown. */
export const BUILD = {
  commit: typeof POINTSMAN_COMMIT === 'undefined' ? '' : POINTSMAN_COMMIT,
  date: typeof POINTSMAN_DATE === 'undefined' ? '' : POINTSMAN_DATE,
};

/** For users: the release and what it was built from. */
export function ownVersion({ commit, date } = BUILD): string {
  const source = commit === '' ? [] : [`commit ${commit.replace(/^([0-9a-f]{12})[0-9a-f]*/, '$1')}`];
  return [`pointsman ${OWN_VERSION}`, ...source, ...(date === '' ? [] : [date])].join(', ');
}

/** As build information in Go has it: empty, clean or dirty. */
export function treeState({ commit } = BUILD): string {
  if (commit === '') return '';
  return commit.endsWith('-dirty') ? 'dirty' : 'clean';
}

/** The Kubernetes release whose node proxy this program behaves like. */
export const KUBERNETES_VERSION = 'v1.37.2';

/** The minor number of a release such as {@link KUBERNETES_VERSION}. */
export function minorOf(version: string): number {
  return Number(version.split('.')[1]);
}

export const KUBERNETES_MINOR = minorOf(KUBERNETES_VERSION);

/** The minor number of the release that the tables of `check` describe. */
export const CHECKED_MINOR = 37;
