"""Benchmarks: accuracy cells, speed ratios, peak memory, and the report made from them.

Run as ``python -m benchmarks {accuracy,speed,memory,report}`` from the folder that holds this
package.
"""
