"""What a trained model recommends: lists for users, similar items, users and items that training has not seen."""
