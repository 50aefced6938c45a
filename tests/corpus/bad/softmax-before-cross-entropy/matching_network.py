# One-shot learning: attention over the support set gives class probabilities, which F.cross_entropy takes for logits.
# source: gitabcworld/MatchingNetworks#5
# expect: softmax-before-cross-entropy
# missed: the probabilities are multiplied before they reach the loss
import torch
from torch import nn
from torch.nn import functional as F


class AttentionalClassify(nn.Module):
    def forward(self, similarities, support_set_y):
        softmax_similarities = similarities.softmax(dim=1)  # <- cause
        return torch.bmm(softmax_similarities.unsqueeze(1), support_set_y).squeeze(1)


class MatchingNetwork(nn.Module):
    def __init__(self, num_classes=4):
        super().__init__()
        self.num_classes = num_classes
        self.g = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 12))
        self.classify = AttentionalClassify()

    def forward(self, support_images, support_labels, target_image, target_label):
        encoded = self.g(support_images)
        query = self.g(target_image).unsqueeze(1)
        similarities = 10 * torch.cosine_similarity(encoded, query, dim=2)
        preds = self.classify(similarities, F.one_hot(support_labels, self.num_classes).float())
        accuracy = (preds.argmax(1) == target_label).float().mean()
        return accuracy, F.cross_entropy(preds, target_label)  # <- softmax-before-cross-entropy, cause


def sample_episodes(prototypes, batch_size=16, shots=2):
    ways = torch.stack([torch.randperm(len(prototypes))[:4] for _ in range(batch_size)])
    support = prototypes[ways].repeat_interleave(shots, dim=1)
    label = torch.randint(4, (batch_size,))
    query = prototypes[ways[torch.arange(batch_size), label]]
    noisy = [x + 0.8 * torch.randn_like(x) for x in (support, query)]
    return noisy[0], torch.arange(4).repeat_interleave(shots).expand(batch_size, -1), noisy[1], label


torch.manual_seed(8)
prototypes = torch.randn(20, 10)
net = MatchingNetwork()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
total_loss, total_accuracy = 0.0, 0.0
for i in range(1, 31):
    acc, c_loss = net(*sample_episodes(prototypes))
    optimizer.zero_grad()
    c_loss.backward()
    optimizer.step()
    total_loss += c_loss.item()
    total_accuracy += acc.item()
    if i % 10 == 0:
        print(f"tr_loss: {total_loss / i:.4f}, tr_accuracy: {total_accuracy / i:.4f}")
