"""A trained model as a folder of ONNX graphs."""
