"""The command line: one file a command, and `options`, which several share.

Door: `main.main`, behind the command ``rmnb``; a command's libraries are loaded when it is called.
"""
