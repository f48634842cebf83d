"""Cholesky factors of large sparse matrices with the same pattern: the symbolic factorisation is computed once.

It is a multifrontal method (Duff and Reid 1983; Liu 1992). Rows are in groups, such as the coordinates of one node. The
graph of the groups is ordered (`elimination_order`), and its elimination tree is divided into chains of columns with
similar patterns. Each chain is one dense frontal matrix: it is assembled from the entries and from the remainders of
its children in the tree, its columns are factored, and its remainder is passed on to the parent. The factorisation of a
matrix that is not positive definite stops at the first non-positive pivot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compilation import compiled, compiled_part
from .elimination_order import MOST_OPERATIONS, least_degree, nested_dissection

WASTE = 0.2
"""Largest fraction of zeros in a dense matrix, up to which columns are combined into one chain."""
PANEL = 32
"""Number of columns that are factored together."""
TILE = 64
"""Number of rows and columns of a product; with PANEL it has less than 2^18 multiplications, above which OpenBLAS uses
threads."""


@compiled
def elimination_tree(starts, rows):
    """Parents (n,) in the elimination tree of a symmetric graph by columns (-1: root), and entries (n,) per column of
    the factor."""
    n = starts.shape[0] - 1
    parent, highest, counts = np.full(n, -1), np.full(n, -1), np.ones(n, dtype=np.int64)
    for j in range(n):
        for entry in range(starts[j], starts[j + 1]):
            i = rows[entry]
            while i != -1 and i < j:
                after = highest[i]
                highest[i] = j
                if after == -1:
                    parent[i] = j
                i = after
    seen = np.full(n, -1)
    for j in range(n):
        seen[j] = j
        for entry in range(starts[j], starts[j + 1]):
            i = rows[entry]
            while i < j and seen[i] != j:
                counts[i] += 1
                seen[i] = j
                i = parent[i]
    return parent, counts


@compiled
def postorder(parent):
    """(n,) nodes of a tree in postorder: children before their parents, subtrees contiguous."""
    n = parent.shape[0]
    first, following = np.full(n, -1), np.full(n, -1)
    for j in range(n - 1, -1, -1):
        if parent[j] >= 0:
            following[j] = first[parent[j]]
            first[parent[j]] = j
    order, stack, done = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), 0
    for root in range(n):
        if parent[root] >= 0:
            continue
        depth = 1
        stack[0] = root
        while depth > 0:
            top = stack[depth - 1]
            if first[top] >= 0:
                stack[depth] = first[top]
                first[top] = following[first[top]]
                depth += 1
            else:
                depth -= 1
                order[done] = top
                done += 1
    return order


@compiled
def chains(parent, counts, waste):
    """(c + 1,) start of each chain of columns of the tree; the columns of a chain have nearly the same rows."""
    n = parent.shape[0]
    begins, number = np.zeros(n + 1, dtype=np.int64), 1
    zeros = 0.0
    for j in range(1, n):
        width = j - begins[number - 1]
        more = zeros + width * (counts[j] + 1 - counts[j - 1])
        entries = float((width + 1) * (counts[j] + 1))
        if parent[j - 1] == j and (more <= waste * entries or (more <= 0.6 * entries and entries < 60.0)):
            zeros = more
        else:
            begins[number] = j
            number += 1
            zeros = 0.0
    begins[number if n else 0] = n
    return begins[: number + 1]


@compiled
def chain_rows(starts, rows, parent, begins):
    """Sorted rows of each chain below its columns, concatenated; start of the rows of each chain; parents of chains."""
    n, number = parent.shape[0], begins.shape[0] - 1
    owner = np.empty(n, dtype=np.int64)
    for c in range(number):
        for j in range(begins[c], begins[c + 1]):
            owner[j] = c
    above = np.full(number, -1)
    first, following = np.full(number, -1), np.full(number, -1)
    for c in range(number):
        up = parent[begins[c + 1] - 1]
        if up >= 0:
            above[c] = owner[up]
            following[c] = first[owner[up]]
            first[owner[up]] = c
    seen, own = np.full(n, -1), np.empty(n, dtype=np.int64)
    below, where = np.empty(4 * rows.shape[0] + 16, dtype=np.int64), np.zeros(number + 1, dtype=np.int64)
    for c in range(number):
        last, count = begins[c + 1], 0
        for j in range(begins[c], last):
            for entry in range(starts[j], starts[j + 1]):
                i = rows[entry]
                if i >= last and seen[i] != c:
                    seen[i] = c
                    own[count] = i
                    count += 1
        child = first[c]
        while child >= 0:
            for entry in range(where[child], where[child + 1]):
                i = below[entry]
                if i >= last and seen[i] != c:
                    seen[i] = c
                    own[count] = i
                    count += 1
            child = following[child]
        begin = where[c]
        if begin + count > below.shape[0]:
            longer = np.empty(2 * below.shape[0] + count, dtype=np.int64)
            longer[:begin] = below[:begin]
            below = longer
        below[begin : begin + count] = np.sort(own[:count])
        where[c + 1] = begin + count
    return below[: where[number]], where, above


@compiled
def chain_entries(starts, rows, position, order, first, last, below, where):
    """Entries of the lower triangle by chain: source index, row and column in the dense matrix of the chain, and start
    of each chain.

    Inputs are the first and last scalar column of each chain, and position and order of the rows."""
    number, most = first.shape[0], 0
    for c in range(position.shape[0]):
        for e in range(starts[c], starts[c + 1]):
            most += position[rows[e]] >= position[c]
    source, by_row, by_column = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    begins, count, local = np.zeros(number + 1, dtype=np.int64), 0, np.empty(position.shape[0], dtype=np.int64)
    for c in range(number):
        for i in range(where[c], where[c + 1]):
            local[below[i]] = last[c] - first[c] + i - where[c]
        for j in range(first[c], last[c]):
            for e in range(starts[order[j]], starts[order[j] + 1]):
                row = position[rows[e]]
                if row >= j:
                    source[count], by_column[count] = e, j - first[c]
                    by_row[count] = row - first[c] if row < last[c] else local[row]
                    count += 1
        begins[c + 1] = count
    return source, by_row, by_column, begins


@compiled_part
def factor_front(front, width, least, panel, rows, product):
    """Factor the first columns of a dense symmetric matrix, lower triangle; False if it is not positive definite.

    Scratch: panel (PANEL, size or more), rows (PANEL * size or more,), product (TILE * TILE,).
    """
    size = front.shape[0]
    begin = 0
    while begin < width:
        end = min(begin + PANEL, width)
        depth, rest = end - begin, size - end
        # the panel is stored transposed, so that the innermost loops have contiguous memory access
        for i in range(begin, size):
            for k in range(depth):
                panel[k, i - begin] = front[i, begin + k]
        for j in range(depth):
            line = panel[j]
            for k in range(j):
                part, other = panel[k, j], panel[k]
                if part != 0.0:
                    for i in range(j, size - begin):
                        line[i] -= part * other[i]
            if not line[j] > least:
                return False
            root = np.sqrt(line[j])
            line[j] = root
            for i in range(j + 1, size - begin):
                line[i] /= root
        for i in range(begin, size):
            for k in range(min(depth, i - begin + 1)):
                front[i, begin + k] = panel[k, i - begin]
        if rest >= TILE:
            update_by_tiles(front, panel, rows, product, end, depth)
        else:
            for i in range(rest):
                line = front[end + i]
                k, at = 0, depth + i
                while k + 4 <= depth:
                    a, b, c, d = panel[k, at], panel[k + 1, at], panel[k + 2, at], panel[k + 3, at]
                    for j in range(i + 1):
                        line[end + j] -= (a * panel[k, depth + j] + b * panel[k + 1, depth + j]) + (
                            c * panel[k + 2, depth + j] + d * panel[k + 3, depth + j]
                        )
                    k += 4
                while k < depth:
                    a = panel[k, at]
                    for j in range(i + 1):
                        line[end + j] -= a * panel[k, depth + j]
                    k += 1
        begin = end
    return True


@compiled_part
def update_by_tiles(front, panel, rows, product, end, depth):
    """Update the columns after a panel, lower triangle.

    The update consists of matrix products of tiles that are too small for multithreading in a library: threads would
    cost more time than they save, and the results would depend on their number.
    """
    size = front.shape[0]
    rest = size - end
    flat = rows[: rest * depth].reshape(rest, depth)
    for i in range(rest):
        for k in range(depth):
            flat[i, k] = panel[k, depth + i]
    for i in range(0, rest, TILE):
        high = min(TILE, rest - i)
        for j in range(0, i + 1, TILE):
            wide = min(TILE, rest - j)
            tile = product[: high * wide].reshape(high, wide)
            np.dot(flat[i : i + high], flat[j : j + wide].T, tile)
            for a in range(high):
                line, part = front[end + i + a], tile[a]
                for b in range(wide if j < i else a + 1):
                    line[end + j + b] -= part[b]


@compiled
def factorise(values, shift, least, tree, entries, factor, stack, position):
    """Fill factor from values with shift added to the diagonal; False if it is not positive definite.

    Args:
        tree: first and last scalar columns of the chains, scalar rows below, their starts, parents, and start of each
            panel in factor.
        entries: source, row and column in the dense matrix, and start of each chain.
    """
    first, last, below, where, above, panels = tree
    source, by_row, by_column, begins = entries
    number, top, largest = first.shape[0], 0, 0
    for c in range(number):
        largest = max(largest, last[c] - first[c] + where[c + 1] - where[c])
    panel, rows, product = np.empty((PANEL, largest)), np.empty(PANEL * largest), np.empty(TILE * TILE)
    held = np.empty(number + 1, dtype=np.int64)  # chains with remainders on the stack
    waiting = 0
    for c in range(number):
        width, count = last[c] - first[c], where[c + 1] - where[c]
        size = width + count
        front = np.zeros((size, size))
        for e in range(begins[c], begins[c + 1]):
            front[by_row[e], by_column[e]] += values[source[e]]
        for i in range(width):
            front[i, i] += shift
            position[first[c] + i] = i
        for i in range(count):
            position[below[where[c] + i]] = width + i
        while waiting > 0 and above[held[waiting - 1]] == c:
            child = held[waiting - 1]
            waiting -= 1
            start, left = where[child], where[child + 1] - where[child]
            top -= left * left
            for i in range(left):
                row, line = position[below[start + i]], top + i * left
                for j in range(i + 1):
                    front[row, position[below[start + j]]] += stack[line + j]
        if not factor_front(front, width, least, panel, rows, product):
            return False
        begin = panels[c]
        for i in range(size):
            for j in range(min(i + 1, width)):
                factor[begin + i * width + j] = front[i, j]
        if count > 0:
            for i in range(count):
                line = top + i * count
                for j in range(i + 1):
                    stack[line + j] = front[width + i, width + j]
            top += count * count
            held[waiting] = c
            waiting += 1
    return True


@compiled
def solve_factored(tree, factor, vector):
    """Replace vector by the solution; both are in the order of the factor."""
    first, last, below, where, _, panels = tree
    for c in range(first.shape[0]):
        width, count, begin, start = last[c] - first[c], where[c + 1] - where[c], panels[c], where[c]
        for i in range(width):
            total = vector[first[c] + i]
            for j in range(i):
                total -= factor[begin + i * width + j] * vector[first[c] + j]
            vector[first[c] + i] = total / factor[begin + i * width + i]
        for i in range(count):
            total = 0.0
            for j in range(width):
                total += factor[begin + (width + i) * width + j] * vector[first[c] + j]
            vector[below[start + i]] -= total
    for c in range(first.shape[0] - 1, -1, -1):
        width, count, begin, start = last[c] - first[c], where[c + 1] - where[c], panels[c], where[c]
        for i in range(count):
            part = vector[below[start + i]]
            for j in range(width):
                vector[first[c] + j] -= factor[begin + (width + i) * width + j] * part
        for i in range(width - 1, -1, -1):
            value = vector[first[c] + i] / factor[begin + i * width + i]
            vector[first[c] + i] = value
            for j in range(i):
                vector[first[c] + j] -= factor[begin + i * width + j] * value


class SparseCholesky:
    """Cholesky factors of symmetric matrices with the same pattern.

    Args:
        starts, rows: pattern by columns (n + 1,) and (e,), both triangles and the diagonal.
        groups: (n,) group numbers from 0; the rows of a group have the same pattern.
        points: (g, 3) positions of the groups in space, for nested dissection; None for other orders.
    """

    def __init__(
        self, starts: NDArray, rows: NDArray, groups: NDArray, points: NDArray[np.float64] | None = None
    ) -> None:
        n = starts.size - 1
        number = int(groups.max(initial=-1)) + 1
        # one column of each group gives the graph of the groups, with repeated connections for each row of a group
        one = np.full(number, n)
        np.minimum.at(one, groups, np.arange(n))
        wide = np.diff(starts)[one]
        inside = np.arange(wide.sum()) + np.repeat(starts[one] - np.cumsum(wide) + wide, wide)
        first, second = groups[rows[inside]], np.repeat(np.arange(number), wide)
        if first.size:
            fresh = np.concatenate(([True], (first[1:] != first[:-1]) | (second[1:] != second[:-1])))
            first, second = first[fresh], second[fresh]
        graph = _pattern(first, second, number)
        first, second = graph[1], np.repeat(np.arange(number), np.diff(graph[0]))
        order, graph, parent, counts = _least_filling(graph, points)
        rank = np.empty(number, dtype=np.int64)
        rank[order] = np.arange(number)
        begins = chains(parent, counts, WASTE)
        below, where, above = chain_rows(*graph, parent, begins)
        # from groups to rows
        self._order = np.argsort(rank[groups], kind="stable")
        position = np.empty(n, dtype=np.int64)
        position[self._order] = np.arange(n)
        wide = np.bincount(rank[groups], minlength=number)
        offset = np.concatenate(([0], np.cumsum(wide)))
        first, last = offset[begins[:-1]], offset[begins[1:]]
        spread = np.repeat(offset[below] - np.concatenate(([0], np.cumsum(wide[below])[:-1])), wide[below])
        scalar_below = spread + np.arange(spread.size)
        scalar_where = np.concatenate(([0], np.cumsum(wide[below])))[where]
        widths, sizes = last - first, last - first + np.diff(scalar_where)
        panels = np.concatenate(([0], np.cumsum(sizes * widths)))
        self._tree = (first, last, scalar_below, scalar_where, above, panels)
        self._entries = chain_entries(starts, rows, position, self._order, first, last, scalar_below, scalar_where)
        self._factor, self._stack = np.empty(int(panels[-1])), np.empty(_highest(above, np.diff(scalar_where)))
        self._position = np.empty(n, dtype=np.int64)

    @property
    def entries(self) -> int:
        """Number of entries of the factor."""
        return int(self._factor.size)

    def factor(self, values: NDArray[np.float64], shift: float, least: float) -> bool:
        """Factor the matrix with entries values (e,) and shift added to its diagonal.

        Returns False if a pivot is not above `least`, so that the matrix is not positive definite.
        """
        return bool(
            factorise(values, shift, least, self._tree, self._entries, self._factor, self._stack, self._position)
        )

    def solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) solution for a right-hand side (n,), with the last factors."""
        vector = right[self._order]
        solve_factored(self._tree, self._factor, vector)
        result = np.empty_like(vector)
        result[self._order] = vector
        return result


def _pattern(rows: NDArray, columns: NDArray, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Graph by columns, without repeated connections."""
    keys = np.sort(columns.astype(np.int64) * size + rows)  # np.unique hashes first, which takes five times as long
    keys = keys[np.concatenate(([True], keys[1:] != keys[:-1]))] if keys.size else keys
    return np.searchsorted(keys // size, np.arange(size + 1)), keys % size


def _least_filling(
    graph: tuple[NDArray, NDArray], points: NDArray | None
) -> tuple[NDArray, tuple[NDArray, NDArray], NDArray, NDArray]:
    """Elimination order (n,) with the least fill-in, graph in this order, parents in its tree, entries per column."""
    size = graph[0].size - 1
    if points is None:
        return _postordered(graph, least_degree(*graph))
    best = _postordered(graph, nested_dissection(*graph, points))
    if operations(best[3]) > MOST_OPERATIONS * size**1.5:
        other = _postordered(graph, least_degree(*graph))
        best = min((best, other), key=lambda found: operations(found[3]))
    return best


def operations(counts: NDArray) -> float:
    """Number of multiplications of a factorisation with counts (n,) entries in the columns of its factor."""
    return float(np.sum(counts.astype(np.float64) ** 2))


def _postordered(
    graph: tuple[NDArray, NDArray], order: NDArray
) -> tuple[NDArray, tuple[NDArray, NDArray], NDArray, NDArray]:
    size = order.size
    rank = np.empty(size, dtype=np.int64)
    rank[order] = np.arange(size)
    order = order[postorder(elimination_tree(*_renumbered(graph, order, rank))[0])]
    rank[order] = np.arange(size)
    ordered = _renumbered(graph, order, rank)
    return order, ordered, *elimination_tree(*ordered)


def _renumbered(graph: tuple[NDArray, NDArray], order: NDArray, rank: NDArray) -> tuple[NDArray, NDArray]:
    """Graph by columns with its nodes in another order; the order of the rows of a column is kept."""
    starts, rows = graph
    wide = np.diff(starts)[order]
    after = np.concatenate(([0], np.cumsum(wide)))
    inside = np.arange(rows.size) + np.repeat(starts[order] - after[:-1], wide)
    return after, rank[rows[inside]]


def _highest(above: NDArray, counts: NDArray) -> int:
    """Largest number of entries of all remainders that wait for their parents."""
    waiting: list[int] = []
    top = most = 0
    for c, (_, count) in enumerate(zip(above.tolist(), counts.tolist(), strict=True)):
        while waiting and above[waiting[-1]] == c:
            top -= int(counts[waiting.pop()]) ** 2
        if count:
            top += count**2
            waiting.append(c)
        most = max(most, top)
    return most
