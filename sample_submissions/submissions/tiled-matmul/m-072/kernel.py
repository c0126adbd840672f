import torch
import triton
import triton.language as tl


@triton.jit
def _splitk(
    a_ptr, b_ptr, c_ptr, M, N, K, k_per_split,
    sam, sak, sbk, sbn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rm = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    rn = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    first = tl.program_id(2) * k_per_split
    last = tl.minimum(first + k_per_split, K)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(first, last, BK):
        rk = (start + tl.arange(0, BK)).to(tl.int64)
        a = tl.load(
            a_ptr + rm[:, None] * sam + rk[None, :] * sak, mask=(rm[:, None] < M) & (rk[None, :] < last), other=0.0
        )
        b = tl.load(
            b_ptr + rk[:, None] * sbk + rn[None, :] * sbn, mask=(rk[:, None] < last) & (rn[None, :] < N), other=0.0
        )
        acc = tl.dot(a, b, acc)
    tl.atomic_add(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def matmul(a, b):
    M, K = a.shape
    N = b.shape[1]
    splits = 2
    k_per_split = triton.cdiv(triton.cdiv(K, splits), 32) * 32
    c = torch.empty((M, N), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), splits)
    _splitk[grid](
        a, b, c, M, N, K, k_per_split, a.stride(0), a.stride(1), b.stride(0), b.stride(1), BM=32, BN=32, BK=32
    )
    return c
