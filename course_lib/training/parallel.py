"""Several processes as one: what the training loop needs from torch.distributed, and
nothing more.

``torchrun --nproc_per_node=2 script.py`` starts the same script twice. Each process
sees the whole stream of batches and works on its share; sums of gradients, losses and
counts are added up, so that the step equals that of one process.

What this module does not do: share the statistics of batch norm, which the course's
models do not use; cut one batch in pieces; or carry a checkpoint to another machine:
with several, its folder must be shared.
"""

from __future__ import annotations

import atexit
import importlib
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn


def join_processes(device: torch.device) -> tuple[int, int]:
    """Join the other processes that torchrun started, if it did."""
    if not dist.is_available() or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return 0, 1
    if not dist.is_initialized():
        backends = {"cuda": "nccl", "cpu": "gloo"}
        if device.type not in backends:
            raise ValueError(
                f"several processes cannot share a {device.type} device; set"
                " COURSE_DEVICE=cpu or use one"
            )
        if device.type == "cuda":
            torch.cuda.set_device(device)
        # Imported later, its default arguments would hold the group, and threads of its
        # own would outlive Python: pytorch/pytorch issue 190489.
        importlib.import_module("torch.distributed.nn.functional")
        dist.init_process_group(backends[device.type])
        atexit.register(dist.destroy_process_group)
    return dist.get_rank(), dist.get_world_size()


def all_reduce_sum(tensor: Tensor) -> Tensor:
    """Replace a tensor by its sum over all processes, in place."""
    if dist.is_available() and dist.is_initialized():
        dist.all_reduce(tensor)
    return tensor


def all_reduce_gradients(model: nn.Module) -> None:
    """Replace the gradient of every parameter by its sum over all processes."""
    if not (dist.is_available() and dist.is_initialized()):
        return
    parameters = [
        parameter for parameter in model.parameters() if parameter.requires_grad
    ]
    used = torch.tensor(
        [parameter.grad is not None for parameter in parameters],
        device=parameters[0].device,
    ).int()
    dist.all_reduce(used)
    shared = [
        parameter
        for parameter, count in zip(parameters, used.tolist(), strict=True)
        if count
    ]
    for parameter in shared:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    by_type: dict[torch.dtype, list[Tensor]] = {}
    for parameter in shared:
        assert parameter.grad is not None
        by_type.setdefault(parameter.grad.dtype, []).append(parameter.grad)
    # one message for all: latency, not bandwidth, is what small models pay
    for gradients in by_type.values():
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        for gradient, summed in zip(
            gradients, flat.split([g.numel() for g in gradients]), strict=True
        ):
            gradient.copy_(summed.view_as(gradient))


def copy_from_first(*tensors: Tensor) -> None:
    """Overwrite tensors by those of process 0, in place."""
    if dist.is_available() and dist.is_initialized():
        for tensor in tensors:
            dist.broadcast(tensor.detach(), src=0)
