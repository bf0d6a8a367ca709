__version__ = version = "0.5.11"
__version_tuple__ = version_tuple = (0, 5, 11)

__commit_id__ = commit_id = None
