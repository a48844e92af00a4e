"""The executable specification of a keyed order: a random permutation that is computed and not stored.

A number of b bits is two halves. In turn, each half is changed by a random function of the other (a Feistel network),
which can be undone: a permutation of the 2^b numbers. For n numbers, 2^(b−1) < n ≤ 2^b, it is repeated until the result
is one of them (cycle walking): a permutation of 0 … n−1, after fewer than two repetitions in the mean.

M. Luby and C. Rackoff, "How to Construct Pseudorandom Permutations from Pseudorandom Functions", SIAM J. Comput., 1988.
J. Black and P. Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002.
"""

from __future__ import annotations

from bayesneg.kernels.reference.draws import GOLDEN, mixed

ROUNDS = 8


def pair_at(place: int, n: int, key: int) -> int:
    """The pair, of n, at a place of the order.

    >>> sorted(pair_at(place, 10, key=7) for place in range(10))
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    return _walked(place, n, key, range(ROUNDS))


def place_of(pair: int, n: int, key: int) -> int:
    """The place of a pair, the inverse of :func:`pair_at`.

    >>> [place_of(pair_at(place, 10, key=7), 10, key=7) for place in range(4)]
    [0, 1, 2, 3]
    """
    return _walked(pair, n, key, range(ROUNDS)[::-1])


def _walked(number: int, n: int, key: int, rounds: range) -> int:
    bits = max(2, (n - 1).bit_length())
    while True:
        number = _changed(number, bits, key, rounds)
        if number < n:
            return number


def _changed(number: int, bits: int, key: int, rounds: range) -> int:
    """Each round changes one half, and is undone by itself."""
    low_bits = bits // 2
    low, high = number % 2**low_bits, number >> low_bits
    for turn in rounds:
        key_of_turn = mixed(key + turn * GOLDEN)
        if turn % 2:
            high ^= mixed(key_of_turn + low * GOLDEN) >> (64 - bits + low_bits)
        else:
            low ^= mixed(key_of_turn + high * GOLDEN) >> (64 - low_bits)
    return high << low_bits | low
