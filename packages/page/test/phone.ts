/** In the page: tables that are wider than their place, or whose cells are beside each other; by what they are called. */
export const TABLES_BESIDE = `[...document.querySelectorAll('.scroll > table')]
  .filter((table) => {
    const cells = [...table.tBodies].flatMap((body) => [...body.rows]).flatMap((row) => [...row.cells]);
    const beside = cells.some((cell) => {
      const { previousElementSibling: before } = cell;
      const { bottom = 0 } = before?.getBoundingClientRect() ?? {};
      return before !== null && bottom > cell.getBoundingClientRect().top + 1 && cell.offsetHeight > 0;
    });
    return beside || table.scrollWidth > table.parentElement.clientWidth;
  })
  .map((table) => table.getAttribute('aria-label'))`;
