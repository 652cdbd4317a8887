"""Ground floor: networks over tensors. Knows no strings and no files.

lstm/        the stacks of ELMo, plain and fast      char_cnn, transformer, awd_lstm: other parts of encoders
output/      output layers of language models        mix, attention, crf, maxout, pooling, recurrent: parts of tasks
networks/    whole networks of tasks                 packing, products, stamp, ...: what those are made with
"""
