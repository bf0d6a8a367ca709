"""The probe: reads an installed SGLang's source and prints what it accepts and does, as one JSON object.

It runs on the host under the service's own interpreter, so these modules use the standard library only and
Python 3.8, and import nothing but each other. They travel as one text (`installation.probe_text`). The
package is found as Python's import would find it, and nothing of it is imported: tenths of a second, no GPU.
"""
