# An auto-decoder: a latent code for each shape is learnt beside the network, each in a group with a schedule of its
# own; the batch is split in chunks whose summed losses are divided by the number of samples of the whole batch.
# source: facebookresearch/DeepSDF train_deep_sdf.py
import torch
from torch import nn

torch.manual_seed(114)
N_SHAPES, LATENT, SAMPLES, BATCH_SPLIT = 6, 4, 32, 3
radii = torch.linspace(0.3, 1.2, N_SHAPES)
decoder = nn.DataParallel(nn.Sequential(nn.Linear(LATENT + 2, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh()))
lat_vecs = nn.Embedding(N_SHAPES, LATENT, max_norm=1.0)
loss_l1 = nn.L1Loss(reduction="sum")
optimizer_all = torch.optim.Adam([{"params": decoder.parameters()}, {"params": lat_vecs.parameters()}])
schedules = [lambda e: 5e-3 * 0.5 ** (e // 10), lambda e: 1e-2 * 0.5 ** (e // 10)]

for epoch in range(25):
    decoder.train()
    for i, param_group in enumerate(optimizer_all.param_groups):
        param_group["lr"] = schedules[i](epoch)
    for indices in torch.randperm(N_SHAPES).split(3):
        xyz = torch.rand(len(indices), SAMPLES, 2) * 3 - 1.5
        sdf_gt = (xyz.norm(dim=2) - radii[indices][:, None]).clamp(-0.5, 0.5).reshape(-1, 1)
        num_sdf_samples = sdf_gt.shape[0]
        xyz_chunks = torch.chunk(xyz.reshape(-1, 2), BATCH_SPLIT)
        index_chunks = torch.chunk(indices.repeat_interleave(SAMPLES), BATCH_SPLIT)
        gt_chunks = torch.chunk(sdf_gt, BATCH_SPLIT)
        batch_loss = 0.0
        optimizer_all.zero_grad()
        for i in range(BATCH_SPLIT):
            batch_vecs = lat_vecs(index_chunks[i])
            pred = decoder(torch.cat([batch_vecs, xyz_chunks[i]], dim=1)).clamp(-0.5, 0.5)
            chunk_loss = loss_l1(pred, gt_chunks[i]) / num_sdf_samples
            reg_loss = 1e-4 * min(1, epoch / 10) * batch_vecs.norm(dim=1).sum() / num_sdf_samples
            chunk_loss = chunk_loss + reg_loss
            chunk_loss.backward()
            batch_loss += chunk_loss.item()
        optimizer_all.step()
    if epoch % 6 == 0:
        print(epoch, f"{batch_loss:.4f}")
