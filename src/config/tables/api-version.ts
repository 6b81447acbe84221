/** What a document says it is, split. */
interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

export function splitApiVersion(apiVersion: string): GroupVersion {
  const slash = apiVersion.indexOf('/');
  return slash < 0
    ? { group: '', version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

export function joinApiVersion({ group, version }: GroupVersion): string {
  return group === '' ? version : `${group}/${version}`;
}
