import os

# Tests run beside each other: threads of one would wait for those of another.
os.environ['OMP_NUM_THREADS'] = '1'
