"""The HTTP service: descriptions and translations for programs, and a page for people.

app      the routes                       models   what is served, behind one interface
guard    ids, logs, headers, keys         batching one model call for many waiting requests
intake   bodies, within limits            server   uvicorn, its patience, and its end
"""
