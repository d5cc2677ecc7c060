"""The command line: the commands by subject, and the options that they share.

Entry point: `main.main`, behind the command ``rmnb``; a command's libraries are loaded when it is called.
"""
