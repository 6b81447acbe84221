/**
 * Whether this host's HNS changes load balancers in place; one for all families. HNS 15.4 answers success and changes nothing
 * (kubernetes/kubernetes#131466), so no version is trusted. The first modification is verified, and later ones whenever HNS
 * is read.
 */
export class Modifying {
  private proven = false;

  /**
   * @param possible whether the version of HNS is known to have it.
   * @param onRefuted HNS answered success and changed nothing; called once.
   */
  constructor(
    private possible: boolean,
    private readonly onRefuted: () => void,
  ) {}

  get isPossible(): boolean {
    return this.possible;
  }

  /** Whether a load balancer was seen to have a modification. */
  get isProven(): boolean {
    return this.proven;
  }

  prove(): void {
    this.proven = true;
  }

  /** HNS refuses it with an error. */
  unsupported(): void {
    this.possible = false;
  }

  /** HNS answers success, and does not modify. */
  refute(): void {
    if (this.possible) this.onRefuted();
    this.possible = false;
  }
}
