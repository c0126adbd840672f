import torch
import triton
import triton.language as tl


@triton.jit
def _attn_fwd(
    Q, K, V, Out, scale, length, DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):  # fmt: skip
    start_m = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1).to(tl.int64) * length * DIM
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, DIM)
    rows = offs_m[:, None] < length
    q = tl.load(Q + base + offs_m[:, None] * DIM + offs_d[None, :], mask=rows, other=0.0)
    m_i = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, DIM], dtype=tl.float32)
    for start_n in range(0, tl.minimum(start_m + BLOCK_M, length), BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        cols = offs_n[:, None] < length
        k = tl.load(K + base + offs_n[:, None] * DIM + offs_d[None, :], mask=cols, other=0.0)
        v = tl.load(V + base + offs_n[:, None] * DIM + offs_d[None, :], mask=cols, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where((offs_m[:, None] >= offs_n[None, :]) & (offs_n[None, :] < length), s, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(tl.float16), v, acc)
        m_i = m_new
    acc = acc / l_i[:, None]
    tl.store(Out + base + offs_m[:, None] * DIM + offs_d[None, :], acc.to(tl.float16), mask=rows)


def attention(q, k, v, scale):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    heads, length, dim = q.shape
    out = torch.empty_like(q)
    grid = (triton.cdiv(length, 32), heads)
    _attn_fwd[grid](q, k, v, out, scale, length, DIM=dim, BLOCK_M=32, BLOCK_N=16)
    return out
