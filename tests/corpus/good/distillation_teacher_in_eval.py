# Distillation: a teacher in eval mode under no_grad beside a student in train mode, soft targets at temperature T.
# source: pytorch/tutorials beginner_source/knowledge_distillation_tutorial.py
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


def mlp(width):
    return nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 4))


def train(model, train_loader, epochs, learning_rate):
    optimizer = optim.Adam(model.parameters(), lr=learning_rate)
    model.train()
    for _epoch in range(epochs):
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()


def train_knowledge_distillation(teacher, student, train_loader, epochs, temperature, soft_weight, ce_weight):
    ce_loss = nn.CrossEntropyLoss()
    optimizer = optim.Adam(student.parameters(), lr=1e-2)
    teacher.eval()
    student.train()
    for epoch in range(epochs):
        running_loss = 0.0
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            with torch.no_grad():
                teacher_logits = teacher(inputs)
            student_logits = student(inputs)
            soft_targets = nn.functional.softmax(teacher_logits / temperature, dim=-1)
            soft_prob = nn.functional.log_softmax(student_logits / temperature, dim=-1)
            soft_loss = torch.sum(soft_targets * (soft_targets.log() - soft_prob)) / soft_prob.size(0) * temperature**2
            loss = soft_weight * soft_loss + ce_weight * ce_loss(student_logits, labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        print(f"Epoch {epoch + 1}/{epochs}, Loss: {running_loss / len(train_loader):.4f}")


def test(model, test_loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in test_loader:
            correct += (model(inputs).argmax(1) == labels).sum().item()
    return 100 * correct / len(test_loader.dataset)


torch.manual_seed(57)
x = torch.randn(240, 16)
loader = DataLoader(TensorDataset(x, x[:, :4].argmax(1)), batch_size=40, shuffle=True)
nn_deep, nn_light = mlp(64), mlp(12)
train(nn_deep, loader, epochs=6, learning_rate=1e-2)
print(f"teacher {test(nn_deep, loader):.1f}%")
train_knowledge_distillation(nn_deep, nn_light, loader, epochs=4, temperature=2, soft_weight=0.25, ce_weight=0.75)
print(f"student {test(nn_light, loader):.1f}%")
