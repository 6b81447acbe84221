/** Operating system and processor architecture in Go's words, as Kubernetes components name their platform: `linux/amd64`. */
export function goPlatform(): string {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  return `${system}/${GO_ARCHITECTURES[process.arch] ?? process.arch}`;
}

const GO_ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };
