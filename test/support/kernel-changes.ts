/** A line of the change log. */
export interface KernelChange {
  readonly because: readonly Readonly<Record<'kind' | 'service' | 'version' | 'change', string>>[];
  readonly frontends: readonly { readonly service?: string }[];
}

/** Whether it was for a changed slice of the Service default/web. */
export function isOfSlice({ because }: KernelChange): boolean {
  return because.some(
    ({ kind, service, version, change }) =>
      kind === 'EndpointSlice' && service === 'default/web' && /^\d+$/.test(version) && change === 'changed',
  );
}
