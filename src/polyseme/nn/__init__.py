"""Networks over tensors. Imports nothing above it, and knows no strings and no files.

config        settings of the networks, without torch
lstm/         ELMo's LSTMs: plain, and fast on CPU and GPU        char_cnn, transformer, awd_lstm: other parts of encoders
output/       output layers of language models                    mix, attention, crf, maxout, pooling, ...: parts of tasks
networks/     the published networks of tasks                     matmul, packing, threads, weight_version, ...: tools
"""
