import pytest
import torch

from skdeepclust.losses import hard_kmeans_batch_loss, nearest_centers, update_running_centers

CENTERS = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
BATCH = torch.tensor([[0.8, 0.2], [-0.5, 0.5]], dtype=torch.float64)


def absorb_one_by_one(centers, counts, embedding, labels):
    centers, counts = centers.clone(), counts.clone()
    for row, label in zip(embedding, labels.tolist(), strict=True):
        counts[label] += 1
        centers[label] += (row - centers[label]) / counts[label]
    return centers, counts


@pytest.mark.parametrize("count_dtype", [torch.int64, torch.float64])
def test_update_of_the_example(close, count_dtype):
    labels = nearest_centers(BATCH, CENTERS)
    assert labels.tolist() == [0, 1]
    before = torch.tensor([100, 100], dtype=count_dtype)
    centers, counts = update_running_centers(CENTERS, before, BATCH, labels)
    close(centers, [[0.998020, 0.001980], [-0.995050, 0.004950]])
    assert counts.dtype == count_dtype
    assert counts.tolist() == [101, 101]
    assert before.tolist() == [100, 100]


def test_update_equals_the_sequential_rule(generator):
    embedding = torch.randn(60, 3, generator=generator, dtype=torch.float64)
    centers = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    # Cluster 3 gets no row at a count of zero, cluster 4 starts from zero.
    labels = torch.randint(0, 4, (60,), generator=generator)
    labels[labels == 3] = 4
    counts = torch.tensor([100, 1, 7, 0, 0])
    expected_centers, expected_counts = absorb_one_by_one(centers, counts, embedding, labels)
    new_centers, new_counts = update_running_centers(centers, counts, embedding, labels)
    torch.testing.assert_close(new_centers, expected_centers, rtol=1e-12, atol=1e-13)
    assert torch.equal(new_counts, expected_counts)
    assert torch.equal(new_centers[3], centers[3])
    torch.testing.assert_close(new_centers[4], embedding[labels == 4].mean(0))


def test_batches_give_the_mean_of_all_rows_absorbed(generator):
    embedding = torch.randn(30, 2, generator=generator, dtype=torch.float64)
    labels = torch.arange(30) % 2
    centers, counts = torch.zeros(2, 2, dtype=torch.float64), torch.zeros(2, dtype=torch.int64)
    for start in range(0, 30, 7):
        rows = slice(start, start + 7)
        centers, counts = update_running_centers(centers, counts, embedding[rows], labels[rows])
    torch.testing.assert_close(centers[1], embedding[1::2].mean(0), rtol=1e-12, atol=1e-14)
    assert counts.tolist() == [15, 15]


def test_batch_loss_and_gradient(close):
    embedding = BATCH.clone().requires_grad_()
    loss = hard_kmeans_batch_loss(embedding, torch.tensor([0, 1]), CENTERS)
    # Squared distances .04 + .04 and .25 + .25, mean .29.
    close(loss.detach(), 0.29, atol=1e-15)
    loss.backward()
    close(embedding.grad, [[-0.2, 0.2], [0.5, 0.5]], atol=1e-15)
