# A text classifier: train_model() turns the logits into probabilities for its accuracy and gives those to the loss too.
# source: sugi-chan/custom_bert_pipeline#1
# expect: softmax-before-cross-entropy
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim import lr_scheduler


class ForSequenceClassification(nn.Module):
    def __init__(self, vocab=50, hidden=16, num_labels=2):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, hidden)
        layer = nn.TransformerEncoderLayer(hidden, 2, 32, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.classifier = nn.Linear(hidden, num_labels)

    def forward(self, ids):
        return self.classifier(self.encoder(self.embeddings(ids))[:, 0])


def train_model(model, dataloaders, criterion, optimizer, scheduler, num_epochs=3):
    for epoch in range(num_epochs):
        for phase in ["train", "val"]:
            model.train(phase == "train")
            running_loss = sentiment_corrects = size = 0
            for inputs, sentiment in dataloaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    outputs = F.softmax(outputs, dim=1)  # <- cause
                    loss = criterion(outputs, torch.max(sentiment, 1)[1])  # <- softmax-before-cross-entropy
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                sentiment_corrects += (outputs.argmax(1) == sentiment.argmax(1)).sum().item()
                size += inputs.size(0)
            if phase == "train":
                scheduler.step()
            print(f"{epoch} {phase} total loss: {running_loss / size:.4f} acc: {sentiment_corrects / size:.4f}")
    return model


torch.manual_seed(4)
reviews = torch.randint(0, 50, (60, 7))
sentiments = F.one_hot((reviews[:, 1] > 25).long(), 2).float()
pairs = list(zip(reviews.split(10), sentiments.split(10), strict=True))
model = ForSequenceClassification()
optimizer = optim.Adam(model.parameters(), lr=2e-3)
scheduler = lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.1)
train_model(model, {"train": pairs[:5], "val": pairs[5:]}, nn.CrossEntropyLoss(), optimizer, scheduler)
